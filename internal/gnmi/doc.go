// Package gnmi serves what is known of switches as OpenConfig has it, over gNMI: interfaces,
// queues and buffers, to read alone. The controller serves its fabric with it, and the embedded switch
// itself; each is a Source.
//
// What is served is the list in schema.go: leaves of OpenConfig's models, and of our own
// headgate-buffer.yang where those have none. The list stands in the place of structs that ygot generates: those
// of openconfig-interfaces and openconfig-qos with what they import are megabytes of a binary that has
// few to spare, for some sixty leaves. ygot's packages for paths are left out as well: they bring glog,
// which starts a goroutine and defines flags as soon as it is linked.
package gnmi
