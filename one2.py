import sys; sys.path.insert(0,"/tmp/h/sass")
from quick import read
a,b=read(sys.argv[1]),read(sys.argv[2])
print(a["n"],b["n"],a["reg"],b["reg"],a["stack"],b["stack"],{k:(b["w"][k],a["w"][k]) for k in set(a["w"])|set(b["w"]) if a["w"][k]!=b["w"][k]})
