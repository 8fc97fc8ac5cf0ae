package belfry

import "github.com/belfry-scheduler/belfry/lib/control"

func requestOf(payload string) control.Request { return control.Request{Payload: []byte(payload)} }
