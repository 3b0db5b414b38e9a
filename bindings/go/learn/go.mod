module libhorus.org/learn

go 1.24

require (
	github.com/prometheus/client_model v0.6.2
	github.com/prometheus/common v0.66.1
	libhorus.org/horus v0.0.0
)

require (
	github.com/kr/pretty v0.3.1 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	google.golang.org/protobuf v1.36.8 // indirect
)

replace libhorus.org/horus => ..
