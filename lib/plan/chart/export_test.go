package chart

// Palettes are ground, ink and soft of each.
func Palettes() map[string][3]string {
	return map[string][3]string{"light": {light.ground, light.ink, light.soft}, "dark": {dark.ground, dark.ink, dark.soft}}
}
