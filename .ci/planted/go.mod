module github.com/belfry-scheduler/belfry

go 1.26.0

require (
	example.org/unheard-of v0.0.0
	github.com/aws/aws-sdk-go-v2 v0.0.0
	github.com/cockroachdb/pebble/v2 v2.0.0
)

replace (
	example.org/unheard-of => ./stub/unheard-of
	github.com/aws/aws-sdk-go-v2 => ./stub/aws
	github.com/cockroachdb/pebble/v2 => ./stub/pebble
)
