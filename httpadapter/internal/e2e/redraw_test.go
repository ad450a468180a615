package e2e_test

import "testing"

// effectsLate holds back what runs once a frame is shown, as on a phone that is busy: Preact runs
// its effects from a timer of no length.
const effectsLate = `(() => { const real = window.setTimeout;
	window.setTimeout = (f, ms, ...more) => real(f, ms || 1500, ...more); })()`

// What changes between a page's first frame and its effects is drawn too.
func TestChangedBeforeEffects(t *testing.T) {
	t.Run("board", func(t *testing.T) {
		s := newBoardService(t)
		dana := newPerson(t, chromium(t), "dana", s.origins[1])
		dana.expected = append(dana.expected, "status of 401")
		dana.beforeScripts(effectsLate)
		dana.open(s.driver + "/board/")
		dana.see("where to give a key", `document.activeElement?.id === 'key'`)
	})
	t.Run("driver app", func(t *testing.T) {
		s := newService(t, "")
		dora := s.driving()
		dora.open("about:blank")
		s.newTask(2, "#9")
		dora.beforeScripts(effectsLate)
		dora.open(s.driver + "/driver/")
		dora.see("what came meanwhile", `document.querySelectorAll('.task').length === 1`)
	})
}
