package nearby

// Parts is by how many different requirements tasks wait, and traits how many properties drivers
// have.
func (x *Index) Parts() (parts, traits int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.waiting.others), len(x.traits)
}

// Queued is how many drivers and tasks the next look of Matches, by the same query, goes through.
func (x *Index) Queued() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.matches.drivers.len() + x.matches.tasks.len()
}
