package names

// Known lists every difference between the v1model build and the Tofino builds, with its
// reason. Tests fail on a difference that is not here, and on one that is here and no more;
// docs/targets/tofino.md has the list as a table.
func Known() []Reason {
	return []Reason{
		{
			Why: "Who may store how much, and who is paused when, is decided by the traffic manager, which no table " +
				"reaches; its pools, thresholds and PFC are set through BF Runtime, and it counts what it refuses and pauses.",
			Differences: onlyV1(
				"table ingress.buffer.buffer_policy", "table ingress.buffer.buffer_port",
				"table egress.pfc.pfc_port",
				"action ingress.buffer.set_buffer_policy", "action ingress.buffer.disable_buffer",
				"action ingress.buffer.set_buffer_port", "action egress.pfc.set_pfc_port",
				"counter ingress.lossless_drops",
				"counter egress.pfc_pauses", "counter egress.pfc_resumes", "counter egress.pfc_refreshes",
				"register buffer_private", "register buffer_shared", "register buffer_counted", "register buffer_headroom",
				"register buffer_tau", "register buffer_port_shared", "register buffer_insured", "register buffer_paused",
				"register buffer_paused_at", "register buffer_pools", "register window_start",
				"register spfc_count", "register spfc_period_end", "register spfc_victim",
			),
		},
		{
			Why: "Ports of a chip check sources by the access lists of its own software; the program has no table for them.",
			Differences: onlyV1("table ingress.source_check.source_check", "action ingress.source_check.permit_source",
				"action ingress.source_check.refuse_source"),
		},
		{
			Why: "The program for the chips forwards IPv4 alone, and drops IPv6 as not_ipv4.",
			Differences: onlyV1("table ingress.routing.ipv6_lpm", "table ingress.routing.ecmp_hash_ipv6",
				"action ingress.routing.hash_five_tuple_ipv6", "action ingress.routing.hash_flow_label", "action ingress.routing.hash_queue_pair_ipv6",
				"table ingress.source_check.source_check_ipv6", "action ingress.source_check.permit_source_ipv6",
				"action ingress.source_check.refuse_source_ipv6",
				"table ingress.pacc.flow_ipv6", "table ingress.pacc.congested_flow_ipv6", "table ingress.pacc.queue_pair_ipv6",
				"action ingress.pacc.count_flow_ipv6", "action ingress.pacc.learn_flow_ipv6", "action ingress.pacc.count_congested_ipv6",
				"action ingress.pacc.know_queue_pair_ipv6", "action ingress.pacc.learn_queue_pair_ipv6",
				"direct counter ingress.pacc.flow_ipv6_counter", "direct counter ingress.pacc.congested_ipv6_counter",
				"digest flow_ipv6_digest_t", "digest queue_pair_ipv6_digest_t"),
		},
		{
			Why: "The program for the chips answers no ARP: hosts behind them need a neighbour entry for their gateway.",
			Differences: onlyV1("table ingress.gateway.gateway_ipv4", "table ingress.gateway.gateway_ipv6",
				"action ingress.gateway.own_ipv4", "action ingress.gateway.proxy_ipv4",
				"action ingress.gateway.own_ipv6", "action ingress.gateway.proxy_ipv6"),
		},
		{
			Why: "The chips' selector hashes the five-tuple without a seed of the switch's own, so that switches one above the other choose alike.",
			Differences: onlyV1("table ingress.routing.ecmp_hash", "action ingress.routing.hash_five_tuple",
				"action ingress.routing.hash_queue_pair"),
		},
		{
			Why:         "What a chip punts is bounded by the rate of its CPU port alone; the program has no limit for each port.",
			Differences: onlyV1("table ingress.punt.punt_limit", "action ingress.punt.set_punt_limit", "register punt_due"),
		},
		{
			Why: "The program for the chips learns no queue pairs from acknowledgements, so their congestion notifications carry queue pair 0.",
			Differences: onlyV1("table ingress.pacc.queue_pair", "action ingress.pacc.know_queue_pair",
				"action ingress.pacc.learn_queue_pair", "digest queue_pair_digest_t"),
		},
		{
			Why: "The traffic manager bounds queues and counts what exceeds a bound; ingress does not see a queue's length.",
			Differences: onlyV1("table ingress.admission.queue_limit", "action ingress.admission.set_queue_limit",
				"register admission_drops", "register queue_bytes"),
		},
		{
			Why: "A stateful ALU adds 32 bits, so a sum of 48 bits stands in two registers; the lower one carries into the upper one.",
			Differences: append(
				onlyV1("register departed_bytes", "register departed_packets"),
				onlyTofino("register egress.statistics.departed_bytes_low", "register egress.statistics.departed_bytes_high",
					"register egress.statistics.departed_packets_low", "register egress.statistics.departed_packets_high")...),
		},
		{
			Why: "A register is accessed once by a packet, and a poll reports eight queues: each queue's last depth has a register of its own.",
			Differences: onlyTofino(
				"register egress.statistics.depth_0", "register egress.statistics.depth_1", "register egress.statistics.depth_2",
				"register egress.statistics.depth_3", "register egress.statistics.depth_4", "register egress.statistics.depth_5",
				"register egress.statistics.depth_6", "register egress.statistics.depth_7"),
		},
		{
			Why: "A stateful ALU cannot take a quarter off an average and add to it at once, and has no signs: packets take turns, " +
				"and rises and falls have sums of their own. The result is kept for a poll to read.",
			Differences: onlyTofino("register estimate_turn", "register estimate_sign", "register estimate_rises",
				"register estimate_falls", "register estimate_gradient"),
		},
		{
			Why: "On the chip the estimate is of egress queues, and the kind of link that a port has gives its headroom; " +
				"on v1model both are of ingress ports, in buffer_port.",
			Differences: onlyTofino("table egress.gradient.estimate_port", "action egress.gradient.set_profile"),
		},
		{
			Why: "A TCAM block has 512 entries, and a stage 24 of them: these are as many as the default precision needs, in whole blocks.",
			Differences: []Difference{
				{"table ingress.buffer.log2_bytes", "size", "16384", "2048"},
				{"table ingress.buffer.log2_ticks", "size", "16384", "2048"},
				{"table ingress.buffer.exp2", "size", "16384", "2048"},
				{"table ingress.buffer.headroom_for", "size", "4096", "1024"},
			},
		},
	}
}

// onlyV1 lists objects that the chips lack.
func onlyV1(objects ...string) []Difference {
	var list []Difference
	for _, o := range objects {
		list = append(list, Difference{Object: o, V1: "yes", Tofino: absent})
	}
	return list
}

// onlyTofino lists objects that only the chips have.
func onlyTofino(objects ...string) []Difference {
	var list []Difference
	for _, o := range objects {
		list = append(list, Difference{Object: o, V1: absent, Tofino: "yes"})
	}
	return list
}
