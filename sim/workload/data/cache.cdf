# Cache followers (Facebook, Roy et al., SIGCOMM 2015).
# Source: github.com/HKUST-SING/TrafficGenerator, commit c08f400c93cfa0a436cd15ca791c2424a37ee34a, conf/CDF_cache.txt,
# whose sizes are packets, here times 1460 B
# size in bytes, cumulative probability in percent; linear in between
1460 0
1460 36
2920 40
10220 46
18980 50
97820 60
194180 70
973820 78
1946180 80
2920000 90
3893820 99
48666180 100
