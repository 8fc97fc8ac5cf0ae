module github.com/belfry-scheduler/belfry

go 1.26.0
