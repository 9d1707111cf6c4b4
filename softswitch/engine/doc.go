package engine

// Where this engine deliberately differs from BMv2 1.15:
//
//   - Reading a field of an invalid header that this packet never held gives 0; in BMv2 it
//     gives what an earlier packet left there. P4_16 leaves it open (version 1.2.5, §8.25).
//   - An index beyond a register, counter, meter or header stack has no effect and reads as
//     0 (a register_read leaves its target alone); BMv2 built for release reads and writes
//     foreign memory, or aborts.
//   - Dividing by zero gives 0, and a failed assert or assume drops the packet and is
//     logged; BMv2 aborts.
//   - A lookahead beyond the packet is PacketTooShort, also in a transition key, where BMv2
//     reads beyond its buffer. hs.last of an empty stack is StackOutOfBounds in a
//     transition key.
//   - hs.last as a whole header is the element extracted last; BMv2 reads it as a field that
//     the header does not have, and aborts.
//   - A parser that visits 4096 states ends with ParserTimeout, and an action
//     ends after 65536 jumps backwards; BMv2 spins. A pipeline with a cycle is refused
//     at load.
//   - A signed field always reads as a number in its range; BMv2 keeps the assigned number if
//     it fits the unsigned range of the field.
//   - Headers may grow a packet by any number of bytes; BMv2 stops at 512.
//   - A push or pop moves all elements of a header stack; BMv2 moves those below its next
//     index only. Elements of union stacks that are pushed or popped out become invalid.
//   - The default entry of a table has a direct counter and meter like every other entry
//     (DefaultEntry).
//   - isValid() of a stack element chosen at run time is supported; BMv2 refuses the
//     program.
//   - Round-robin hashes distinguish at most 65536 inputs.
//   - The target of a _jump is a constant, as p4c writes it.
//   - Clone sessions may truncate and may name a queue.
//   - The log of a packet has no lines for the primitives of actions, and one line for each field of a
//     table's key.
