package sim

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// settings is a struct of settings as text, without those that are off.
func settings(of any) string {
	v := reflect.ValueOf(of)
	var parts []string
	for i := range v.NumField() {
		field := v.Field(i)
		if field.IsZero() {
			continue
		}
		name := strings.ToLower(v.Type().Field(i).Name)
		switch value := field.Interface().(type) {
		case bool:
			parts = append(parts, name)
		case float64:
			parts = append(parts, fmt.Sprintf("%s %.2g", name, value))
		case time.Duration:
			parts = append(parts, fmt.Sprintf("%s %s", name, value.Round(time.Millisecond)))
		default:
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
