// SPDX-License-Identifier: Apache-2.0

// Command horus-chart prints what Helm makes of a chart: horus-chart CHART RELEASE NAMESPACE KUBERNETES_VERSION [VALUES_AS_YAML
// [API_VERSION_THAT_IS_SERVED...]].
// It is a module of its own, for Helm wants other versions of what kube-scheduler is built with.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "horus-chart:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("expected CHART RELEASE NAMESPACE KUBERNETES_VERSION [VALUES_AS_YAML], found %d arguments", len(args))
	}
	out, err := render(args)
	fmt.Print(out)
	return err
}

func render(args []string) (string, error) {
	chart, err := loader.Load(args[0])
	if err != nil {
		return "", err
	}
	given := map[string]any{}
	if len(args) > 4 {
		if err := yaml.Unmarshal([]byte(args[4]), &given); err != nil {
			return "", err
		}
	}
	release := common.ReleaseOptions{Name: args[1], Namespace: args[2], IsInstall: true}
	kubernetes, err := common.ParseKubeVersion(args[3])
	if err != nil {
		return "", err
	}
	if wants := chart.Metadata.KubeVersion; !chartutil.IsCompatibleRange(wants, kubernetes.String()) { // as helm install does
		return "", fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wants, kubernetes.Version)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *kubernetes
	capabilities.APIVersions = append(capabilities.APIVersions, args[min(5, len(args)):]...)
	values, err := util.ToRenderValues(chart, given, release, capabilities) // checks the schema too
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, files[name])
	}
	return out.String(), nil
}
