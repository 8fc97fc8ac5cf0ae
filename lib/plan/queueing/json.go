package queueing

import (
	"encoding/json"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

type plainConfig Config

// configForm is a Config as JSON: its durations are text, as everywhere.
type configForm struct {
	plainConfig
	For  schedule.Duration `json:"for"`
	Warm schedule.Duration `json:"warm"`
}

// MarshalJSON writes durations as text.
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(configForm{plainConfig(c), schedule.Duration(c.For), schedule.Duration(c.Warm)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Config) UnmarshalJSON(text []byte) error {
	var form configForm
	if err := json.Unmarshal(text, &form); err != nil {
		return err
	}
	*c = Config(form.plainConfig)
	c.For, c.Warm = form.For.Std(), form.Warm.Std()
	return nil
}

// serviceForm is a Service as JSON.
type serviceForm struct {
	Kind Kind              `json:"kind"`
	Mean schedule.Duration `json:"mean"`
	P99  schedule.Duration `json:"p99"`
}

// MarshalJSON writes durations as text.
func (s Service) MarshalJSON() ([]byte, error) {
	return json.Marshal(serviceForm{s.Kind, schedule.Duration(s.Mean), schedule.Duration(s.P99)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Service) UnmarshalJSON(text []byte) error {
	var form serviceForm
	if err := json.Unmarshal(text, &form); err != nil {
		return err
	}
	*s = Service{form.Kind, form.Mean.Std(), form.P99.Std()}
	return nil
}
