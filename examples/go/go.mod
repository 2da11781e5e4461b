module example

go 1.26.0

require (
	github.com/contribsys/faktory v1.9.3
	github.com/contribsys/faktory_worker_go v1.7.0
)

require github.com/stretchr/testify v1.12.1 // indirect
