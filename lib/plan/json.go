package plan

import (
	"encoding/json"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

type plainLoad Load

// loadForm is a Load as JSON: its durations are text, as everywhere.
type loadForm struct {
	plainLoad
	Late      schedule.Duration `json:"late"`
	Duration  schedule.Duration `json:"duration"`
	Retention schedule.Duration `json:"retention"`
}

// MarshalJSON writes durations as text.
func (l Load) MarshalJSON() ([]byte, error) {
	return json.Marshal(loadForm{plainLoad(l), schedule.Duration(l.Late), schedule.Duration(l.Duration), schedule.Duration(l.Retention)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *Load) UnmarshalJSON(text []byte) error {
	var form loadForm
	if err := json.Unmarshal(text, &form); err != nil {
		return err
	}
	*l = Load(form.plainLoad)
	l.Late, l.Duration, l.Retention = form.Late.Std(), form.Duration.Std(), form.Retention.Std()
	return nil
}
