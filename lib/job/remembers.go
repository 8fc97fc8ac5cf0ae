package job

// Remembered is the Edition of a generation where that needs no reading, for who asks nobody where nobody need be asked; nil where it does.
func (b *Book) Remembered(tenant, name string, generation int64) *Edition {
	return b.recall(editionKey{tenant, name, generation})
}
