// Functions of lower.go have no bodies there; this file of assembler makes the compiler accept that.
