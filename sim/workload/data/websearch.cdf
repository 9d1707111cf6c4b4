# Web search (DCTCP, SIGCOMM 2010), as used in the evaluation of HPCC (SIGCOMM 2019, §5.1).
# Source: github.com/alibaba-edu/High-Precision-Congestion-Control, commit 9f4be2a9ead8a90e8bf732c66bd758c00e58e5be, traffic_gen/WebSearch_distribution.txt
# size in bytes, cumulative probability in percent; linear in between
0 0
10000 15
20000 20
30000 30
50000 40
80000 53
200000 60
1000000 70
2000000 80
5000000 90
10000000 97
30000000 100
