package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// vendored are the packages that are bundled, and where their modules lie below vendor. The same files are those of package-lock.json:
// make test-console compares them.
var vendored = map[string]string{
	"preact":               "preact/dist/preact.module.js",
	"preact/hooks":         "preact/hooks/dist/hooks.module.js",
	"preact/jsx-runtime":   "preact/jsx-runtime/dist/jsxRuntime.module.js",
	"@preact/signals":      "@preact/signals/dist/signals.module.js",
	"@preact/signals-core": "@preact/signals-core/dist/signals-core.module.js",
}

// bundle gives the files of lib/console/dist, by name. What a page would load from elsewhere is an error.
func bundle(root string) (map[string][]byte, error) {
	web, err := filepath.Abs(filepath.Join(root, "lib/console/web"))
	if err != nil {
		return nil, err
	}
	alias := map[string]string{}
	for name, file := range vendored {
		alias[name] = filepath.Join(web, "vendor", filepath.FromSlash(file))
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: web,
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "src/main.tsx", OutputPath: "app"},
			{InputPath: "src/style.css", OutputPath: "style"},
		},
		Outdir:            filepath.Join(web, "../dist"),
		Bundle:            true,
		Format:            api.FormatESModule,
		Splitting:         true,
		Metafile:          true,
		ChunkNames:        "[name]-[hash]",
		Platform:          api.PlatformBrowser,
		Target:            api.ES2022,
		Engines:           []api.Engine{{Name: api.EngineChrome, Version: "123"}, {Name: api.EngineFirefox, Version: "120"}, {Name: api.EngineSafari, Version: "17.5"}},
		JSX:               api.JSXAutomatic,
		JSXImportSource:   "preact",
		Alias:             alias,
		MinifyWhitespace:  true,
		MinifyIdentifiers: true,
		MinifySyntax:      true,
		Charset:           api.CharsetASCII,
		LegalComments:     api.LegalCommentsNone,
		LineLimit:         500, // so that a diff of the outcome is one of lines
		TsconfigRaw:       "{}",
	})
	if len(result.Errors)+len(result.Warnings) > 0 {
		said := api.FormatMessages(append(result.Errors, result.Warnings...), api.FormatMessagesOptions{})
		return nil, errors.New(strings.Join(said, ""))
	}
	files, err := renamed(result)
	if err != nil {
		return nil, err
	}
	page, err := os.ReadFile(filepath.Join(web, "src/index.html"))
	if err != nil {
		return nil, err
	}
	files["index.html"] = page
	licences, err := licences(web)
	if err != nil {
		return nil, err
	}
	files["licences.txt"] = licences
	return files, nil
}

// hashed is the name that a part gets which is loaded on demand, or which several parts share.
var hashed = regexp.MustCompile(`^(.+)-[A-Z0-9]{8}\.js$`)

// renamed gives parts names that stay when their text changes, so that a diff shows what has changed in which: "shell.js" is what every page
// needs, "queues.js" a page that is loaded on demand, and "with-chart.js" what some of those share, by the first of its modules. What is
// served has a folder that is named by the text of all of them.
func renamed(result api.BuildResult) (map[string][]byte, error) {
	var meta struct {
		Outputs map[string]struct {
			Inputs map[string]struct{} `json:"inputs"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal([]byte(result.Metafile), &meta); err != nil {
		return nil, err
	}
	of := map[string][]string{} // modules by part
	for name, output := range meta.Outputs {
		of[filepath.Base(name)] = slices.Sorted(maps.Keys(output.Inputs))
	}
	var pairs []string
	for base, modules := range of {
		parts := hashed.FindStringSubmatch(base)
		switch {
		case parts == nil:
		case parts[1] != "chunk":
			pairs = append(pairs, base, parts[1]+".js")
		case slices.Contains(modules, shell):
			pairs = append(pairs, base, "shell.js")
		default:
			first := filepath.Base(modules[0])
			pairs = append(pairs, base, "with-"+strings.TrimSuffix(first, filepath.Ext(first))+".js")
		}
	}
	names := strings.NewReplacer(pairs...)
	files := map[string][]byte{}
	for _, file := range result.OutputFiles {
		base := filepath.Base(file.Path)
		name := names.Replace(base)
		if files[name] != nil {
			return nil, fmt.Errorf("two parts are called %s: two pages of one name", name)
		}
		files[name] = []byte(names.Replace(string(file.Contents)))
		for _, module := range of[base] {
			if name != "shell.js" && slices.Contains(shared, module) {
				return nil, fmt.Errorf("%s is in %s, not in the shell: a page that is loaded on demand begins with import '../app'", module, name)
			}
		}
	}
	return files, nil
}

// shell is the module from which all others are reached that every page needs, and shared are two of those.
const shell = "src/app.tsx"

var shared = []string{"src/api.ts", "src/ui.tsx"}

// licences are those of what is bundled, which ask to be handed on with it.
func licences(web string) ([]byte, error) {
	var text strings.Builder
	for _, name := range []string{"@preact/signals", "@preact/signals-core", "preact"} {
		of, err := os.ReadFile(filepath.Join(web, "vendor", filepath.FromSlash(name), "LICENSE"))
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "%s\n\n%s\n\n", name, strings.TrimSpace(string(of)))
	}
	return []byte(text.String()), nil
}

func names(files map[string][]byte) []string { return slices.Sorted(maps.Keys(files)) }
