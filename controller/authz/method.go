package authz

// Method describes a method of the API: the roles that may call it, and which member of a cluster answers it.
type Method struct {
	roles []Role
	// Leader is the reason why only the leader answers; empty if followers answer too, from the replicated state.
	Leader string
	// LeaderFirst is set if the leader's answer is better: a follower answers only if no leader answers soon.
	LeaderFirst bool
}

// Roles that several methods have. Admin has every method.
var (
	free     = []Role{anyone}
	reading  = []Role{Viewer, Operator}
	own      = []Role{Viewer, Operator, Application} // an application sees only its own flows
	changing = []Role{Operator}
	weighing = []Role{Operator, Application}
	hosts    = []Role{Host}
)

// Why only the leader answers.
const (
	changes    = "changes are made by the leader"
	switches   = "only the leader knows the state of switches"
	reports    = "only the leader knows the state of hosts"
	follows    = "only the leader sends changes as they happen"
	backup     = "a backup is a line of the audit log, and " + changes
	auditFile  = "the audit log's file is the leader's"
	reflection = "only the leader lists the services"
)

// Metrics is the method name under which a scrape of the Prometheus metrics is authorised.
const Metrics = "GET /metrics"

// methods are all methods. One that is not here is refused to everybody.
var methods = map[string]Method{
	"/headgate.v1.FabricService/GetFabric":       {roles: reading, LeaderFirst: true},
	"/headgate.v1.FabricService/ListSwitches":    {roles: reading, Leader: switches},
	"/headgate.v1.FabricService/PlanConfig":      {roles: changing, Leader: switches}, // the plan reads files and calls addresses
	"/headgate.v1.FabricService/ApplyConfig":     {roles: changing, Leader: changes},
	"/headgate.v1.FabricService/ConfirmConfig":   {roles: changing, Leader: changes},
	"/headgate.v1.FabricService/ListHistory":     {roles: reading},
	"/headgate.v1.FabricService/GetPredictions":  {roles: reading, Leader: switches},
	"/headgate.v1.FabricService/SetLink":         {roles: changing, Leader: changes},
	"/headgate.v1.FabricService/WatchEvents":     {roles: reading, Leader: follows},
	"/headgate.v1.FabricService/StreamTelemetry": {roles: reading, Leader: switches},
	"/headgate.v1.FabricService/GetSeries":       {roles: reading, Leader: switches},

	"/headgate.v1.StateService/BackupState":   {roles: changing, Leader: backup}, // the backup contains the audit log
	"/headgate.v1.StateService/ReplaceMember": {roles: changing, Leader: changes},

	"/headgate.v1.WeightService/SetWeight":    {roles: weighing, Leader: changes},
	"/headgate.v1.WeightService/SetWeights":   {roles: weighing, Leader: changes},
	"/headgate.v1.WeightService/DeleteFlow":   {roles: weighing, Leader: changes},
	"/headgate.v1.WeightService/ListWeights":  {roles: own},
	"/headgate.v1.WeightService/WatchWeights": {roles: own, Leader: follows},
	"/headgate.v1.WeightService/SetBudget":    {roles: changing, Leader: changes},
	"/headgate.v1.WeightService/ListAudit":    {roles: changing},
	"/headgate.v1.WeightService/ExportAudit":  {roles: changing, Leader: auditFile},

	"/headgate.v1.PriorityService/AllocatePriority": {roles: weighing, Leader: changes},
	"/headgate.v1.PriorityService/ReleasePriority":  {roles: weighing, Leader: changes},
	"/headgate.v1.PriorityService/ListPriorities":   {roles: own},
	"/headgate.v1.PriorityService/WatchPriorities":  {roles: own, Leader: follows},

	"/headgate.v1.HostService/Attach":     {roles: hosts, Leader: changes},
	"/headgate.v1.HostService/ListFlows":  {roles: reading, Leader: reports},
	"/headgate.v1.HostService/WatchFlows": {roles: reading, Leader: reports},
	"/headgate.v1.HostService/GetTraffic": {roles: reading, Leader: reports},

	"/gnmi.gNMI/Capabilities": {roles: reading, Leader: switches},
	"/gnmi.gNMI/Get":          {roles: reading, Leader: switches},
	"/gnmi.gNMI/Subscribe":    {roles: reading, Leader: switches},
	"/gnmi.gNMI/Set":          {roles: reading, Leader: changes}, // gNMI Set is always refused

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {roles: reading, Leader: reflection},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {roles: reading, Leader: reflection},

	// Process supervisors ask for the health and have no certificate. Each member answers for itself.
	"/grpc.health.v1.Health/Check": {roles: free},
	"/grpc.health.v1.Health/List":  {roles: free},
	"/grpc.health.v1.Health/Watch": {roles: free},
	Metrics:                        {roles: reading},
}

// Changes reports whether a method changes the controllers' state.
func (m Method) Changes() bool { return m.Leader == changes }

// Known reports whether a method is in the table.
func Known(method string) bool { return methods[method].roles != nil }

// MethodOf returns a method of the table; the zero Method for one that is not in it.
func MethodOf(method string) Method { return methods[method] }
