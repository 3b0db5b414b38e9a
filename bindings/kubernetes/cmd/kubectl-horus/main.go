// SPDX-License-Identifier: Apache-2.0

// Command kubectl-horus is a plugin of kubectl: why a pod is where it is, and profiles of models.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	root := &cobra.Command{
		Use: "kubectl-horus", Short: "Placement of pods with GPUs", SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(explainCommand(), profileCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl horus:", err)
		os.Exit(1)
	}
}

// connect reads the kubeconfig as kubectl does, and the namespace that counts.
func connect(namespace string) (kubernetes.Interface, string, error) {
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	if namespace == "" {
		var err error
		if namespace, _, err = config.Namespace(); err != nil {
			return nil, "", err
		}
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(rest)
	return client, namespace, err
}
