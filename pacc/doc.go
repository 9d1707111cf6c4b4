// Package pacc runs PACC (Zhong et al., "PACC: Proactive and Accurate Congestion Feedback
// for RDMA Congestion Control") over the flow table of Headgate's pipeline: once a period
// it reads what every flow has sent and how many of its packets met a queue above Q_th,
// lets package cnpgen compute, and sends the CNPs, evenly spread.
//
// One Loop serves one switch. It knows neither clocks nor connections: a Switch stands for
// the data plane, and is P4Runtime (controller/feature/pacc) or the switch's own memory
// (pacc/local). That is how one loop runs in the controller, as far away as a period
// allows, and in the switch's own process.
package pacc
