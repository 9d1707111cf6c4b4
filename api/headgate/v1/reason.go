package headgatev1

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
)

// ReasonDomain is the domain of the google.rpc.ErrorInfo that errors of this API carry.
const ReasonDomain = "headgate"

// Reasons of errors. docs/api/grpc.md says what each means, with its status code and metadata.
const (
	ReasonOutcomeUnknown     = "OUTCOME_UNKNOWN"
	ReasonNotMade            = "NOT_MADE"
	ReasonInvalidField       = "INVALID_FIELD"
	ReasonBudgetExceeded     = "BUDGET_EXCEEDED"
	ReasonApplicationUnknown = "APPLICATION_UNKNOWN"
	ReasonPriorityTaken      = "PRIORITY_TAKEN"
	ReasonPriorityNotTaken   = "PRIORITY_NOT_TAKEN"
	ReasonPrioritiesUsedUp   = "PRIORITIES_USED_UP"
	ReasonNoPriorities       = "NO_PRIORITIES"
	ReasonFlowNotFound       = "FLOW_NOT_FOUND"
	ReasonFlowForeign        = "FLOW_FOREIGN"
	ReasonTooManyFlows       = "TOO_MANY_FLOWS"
	ReasonLinkNotFound       = "LINK_NOT_FOUND"
	ReasonNodeNotFound       = "NODE_NOT_FOUND"
	ReasonGenerationNotFound = "GENERATION_NOT_FOUND"
	ReasonGenerationChanged  = "GENERATION_CHANGED"
	ReasonNothingToConfirm   = "NOTHING_TO_CONFIRM"
	ReasonNotAuthenticated   = "NOT_AUTHENTICATED"
	ReasonNotPermitted       = "NOT_PERMITTED"
	ReasonLimitReached       = "LIMIT_REACHED"
	ReasonTryAgain           = "TRY_AGAIN"
	ReasonSuperseded         = "SUPERSEDED"
	ReasonNotPossible        = "NOT_POSSIBLE"
	ReasonInternal           = "INTERNAL"
)

// Reason returns the reason and the metadata of an error of this API, empty for an error without.
func Reason(err error) (reason string, metadata map[string]string) {
	for _, d := range status.Convert(err).Details() {
		if i, ok := d.(*errdetails.ErrorInfo); ok && i.GetDomain() == ReasonDomain {
			return i.GetReason(), i.GetMetadata()
		}
	}
	return "", nil
}
