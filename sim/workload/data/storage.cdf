# Alibaba's distributed storage in 2019.
# Source: github.com/alibaba-edu/High-Precision-Congestion-Control, commit 9f4be2a9ead8a90e8bf732c66bd758c00e58e5be, traffic_gen/AliStorage2019.txt
# size in bytes, cumulative probability in percent; linear in between
0 0
4000 22.93
8000 69.21
16000 80.61
32000 90.47
64000 93.53
128000 96.77
256000 97.53
2000000 100
