// Functions of lower.go have their bodies elsewhere; a file of assembler is how the compiler is told.
