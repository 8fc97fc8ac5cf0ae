package job

// Remembers tells whether Edition gives the definition of a generation without reading, for who asks nobody where nobody need be asked.
func (b *Book) Remembers(tenant, name string, generation int64) bool {
	return b.recall(editionKey{tenant, name, generation}) != nil
}
