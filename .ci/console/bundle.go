package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
		Format:            api.FormatIIFE,
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
	files := map[string][]byte{}
	for _, file := range result.OutputFiles {
		files[filepath.Base(file.Path)] = file.Contents
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
