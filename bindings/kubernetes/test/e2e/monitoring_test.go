// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Both modes are scraped: each exports what the other does not. Of kube-scheduler's own metrics those are exported that something
// was counted of.
func TestMonitoringAsksForNothingThatIsNotExported(t *testing.T) {
	args := []string{"../../charts/horus"}
	for _, mode := range []string{"shadow", "place"} {
		c := start(t, "")
		install(t, c, "{mode: "+mode+", dryRuns: true, monitoring: {dashboard: true}, observer: {enabled: true}, advise: {enabled: true}}")
		node(t, c, "n1", 1, nil)
		makePod(t, c, podSpec{name: "a", whole: 2})
		refused(t, c, "a")
		if mode == "place" {
			until(t, c, "it counts as pending", func() bool { return metric(c, "horus_oldest_pending_seconds") >= 1 })
		}
		path := filepath.Join(t.TempDir(), mode)
		check(t, os.WriteFile(path, []byte(c.Metrics()), 0o600))
		told := path + "-observer"
		check(t, os.WriteFile(told, []byte(observer(t, c)()), 0o600))
		deployment, err := c.Client.AppsV1().Deployments(system).Get(ctx, "horus-advise", metav1.GetOptions{})
		check(t, err)
		webhook, advised := c.NewAdvise("horus-advise"), path+"-advise"
		webhook.Start(token(t, c, "horus-advise"), deployment.Spec.Template.Spec.Containers[0].Args)
		check(t, os.WriteFile(advised, []byte(webhook.Metrics()), 0o600))
		args = append(args, path, told, advised)
		forbidden(t, c)
	}
	if out, err := exec.Command(filepath.Join(os.Getenv("HORUS_K8S_BIN"), "horus-monitoring"), args...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestMonitoringNeedsTheRightThatTheChartGives(t *testing.T) {
	c := start(t, "")
	install(t, c, "monitoring: {prometheus: {namespace: "+system+", name: prometheus}}")
	for name, want := range map[string]string{"prometheus": "horus_mirrored_nodes", "somebody": "403"} {
		_, err := c.Client.CoreV1().ServiceAccounts(system).Create(ctx, &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		check(t, err)
		text, err := c.Scrape(token(t, c, name))
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: expected %s, found %s", name, want, text)
		}
	}
}
