# Data mining (VL2, SIGCOMM 2009).
# Source: github.com/HKUST-SING/TrafficGenerator, commit 1c1bc6577053ec1d609ce83e2e83616165af0fdd, conf/VL2_CDF.txt
# size in bytes, cumulative probability in percent; linear in between
0 0
180 10
216 20
560 30
900 40
1100 50
1870 60
3160 70
10000 80
400000 90
3160000 95
100000000 98
1000000000 100
