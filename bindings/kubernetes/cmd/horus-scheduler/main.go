// SPDX-License-Identifier: Apache-2.0

// Command horus-scheduler is kube-scheduler with the plugins Horus, HorusDynamicResources and HorusTaintToleration; otherwise upstream.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"libhorus.org/kubernetes/internal/library"
	"libhorus.org/kubernetes/plugin"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == library.Argument {
		if err := library.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "horus-scheduler "+library.Argument+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cli.Run(app.NewSchedulerCommand(
		app.WithPlugin(plugin.Name, plugin.New), app.WithPlugin(plugin.DRAName, plugin.NewDRA),
		app.WithPlugin(plugin.TaintsName, plugin.NewTaints))))
}
