// SPDX-License-Identifier: Apache-2.0

// Command kubectl-horus is a plugin of kubectl: why a pod is where it is, and profiles of models.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	root := rootCommand(os.Stdout, os.Stderr)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(root.ErrOrStderr(), "kubectl horus:", err)
		os.Exit(1)
	}
}

func rootCommand(out, problems io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl-horus", Short: "Placement of pods with GPUs", SilenceUsage: true, SilenceErrors: true,
	}
	root.SetOut(plain(out))
	root.SetErr(plain(problems))
	root.AddCommand(explainCommand(), profileCommand())
	return root
}

// kubeconfig is read as kubectl does.
func kubeconfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
}

// connect tells the namespace that counts, too.
func connect(namespace string) (kubernetes.Interface, string, error) {
	config := kubeconfig()
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
