package gantt

// Palettes are ground, ink, soft and the marks of each.
func Palettes() map[string][]string {
	return map[string][]string{"light": append([]string{light.ground, light.ink, light.soft}, light.marks[:]...), "dark": append([]string{dark.ground, dark.ink, dark.soft}, dark.marks[:]...)}
}
