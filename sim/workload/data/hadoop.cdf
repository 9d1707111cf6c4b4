# Facebook Hadoop (Roy et al., SIGCOMM 2015), as used in the evaluation of HPCC (SIGCOMM 2019, §5.1).
# Source: github.com/alibaba-edu/High-Precision-Congestion-Control, commit 9f4be2a9ead8a90e8bf732c66bd758c00e58e5be, traffic_gen/FbHdp_distribution.txt
# size in bytes, cumulative probability in percent; linear in between
0 0
100 1
200 2
300 5
350 15
400 20
500 30
600 40
700 50
1000 60
2000 67
7000 70
30000 72
50000 82
80000 87
120000 90
300000 95
1000000 97.5
2000000 99
10000000 100
