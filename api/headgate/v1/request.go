package headgatev1

// RequestIDKey is the key of the metadata in which a client names a change: 1 to 64 printable ASCII characters, which
// it uses for no other change. Who asks again with the same id, and for the same, is answered what came of the first time,
// and nothing is done twice. With another request under an id that was used the call fails with INVALID_ARGUMENT.
const RequestIDKey = "headgate-request-id"
