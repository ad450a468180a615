package tracking_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Who embeds the library compiles what it needs and no more: the root package the standard library
// alone, the memory store rtree.
func TestImports(t *testing.T) {
	for pkg, allowed := range map[string][]string{
		".":                    nil,
		"./store/memory":       {"github.com/tidwall/rtree"},
		"./store/trackingtest": {"github.com/tidwall/rtree"},
		"./httpadapter":        {"github.com/microcosm-cc/bluemonday"},
		"./store/sqlite":       {"github.com/tidwall/rtree", "github.com/jmoiron/sqlx", "modernc.org/sqlite"},
		"./store/postgres":     {"github.com/jackc/pgx/v5/pgxpool"},
	} {
		out, err := exec.Command("go", "list", "-f", `{{join .Deps "\n"}}`, pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		ours := []string{"github.com/seed-8aba7b13/tracking"}
		for _, a := range allowed { // with what these need themselves
			deps, err := exec.Command("go", "list", "-deps", a).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, deps)
			}
			ours = append(ours, strings.Fields(string(deps))...)
		}
		for _, dep := range strings.Fields(string(out)) {
			if strings.Contains(strings.SplitN(dep, "/", 2)[0], ".") && !strings.HasPrefix(dep, ours[0]) &&
				!slices.Contains(ours, dep) {
				t.Errorf("%s needs %s", pkg, dep)
			}
		}
	}
}
