// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/pager"

	"libhorus.org/kubernetes/internal/objects"
)

// What `horus import` reads, in whichever version the server prefers.
var imported = []schema.GroupVersionResource{
	{Resource: "nodes"}, {Resource: "pods"},
	{Group: "resource.k8s.io", Resource: "resourceslices"}, {Group: "resource.k8s.io", Resource: "resourceclaims"},
	{Group: objects.Group, Resource: objects.ProfilesResource},
}

// What a cluster lacks without one of them.
var lacking = map[string]string{
	"resource.k8s.io": "so no GPUs by DRA", objects.Group: "so what jobs use is what they ask for",
}

type importFlags struct {
	horus, out           string
	rackLabels, gpusFile []string
	json                 bool
}

func (f importFlags) args() []string {
	args := []string{"import", "-", "--out", f.out}
	for _, label := range f.rackLabels {
		args = append(args, "--rack-label", label)
	}
	for _, file := range f.gpusFile {
		args = append(args, "--gpus-file", file)
	}
	if f.json {
		args = append(args, "--json")
	}
	return args
}

func importCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use: "import --out DIR", Args: cobra.NoArgs,
		Short: "The cluster as files of the horus command: what could be gained, with nothing installed",
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := exec.LookPath(flags.horus)
			if err != nil {
				return fmt.Errorf("--horus: expected the horus command of libhorus, found none (%w): put it onto your PATH, or name its file; "+
					"./scripts/quickstart builds it into build/quickstart/bin", err)
			}
			config, err := kubeconfig().ClientConfig()
			if err != nil {
				return err
			}
			return importCluster(config, cmd, program, flags.args())
		},
	}
	cmd.Flags().StringVar(&flags.horus, "horus", "horus", "the horus command of libhorus")
	cmd.Flags().StringVar(&flags.out, "out", "", "folder to write to; it is made, and files of earlier imports are replaced")
	cmd.Flags().StringArrayVar(&flags.rackLabels, "rack-label", nil, "label that tells a node's rack, before those that are known; may be repeated")
	cmd.Flags().StringArrayVar(&flags.gpusFile, "gpus-file", nil, "YAML file with GPU types of your own; may be repeated")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// importCluster pipes the cluster's objects into the command. Where they cannot all be had it is killed before its input ends,
// so that it writes no part of a cluster.
func importCluster(config *rest.Config, command *cobra.Command, program string, args []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = command.OutOrStdout(), command.ErrOrStderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := fetch(ctx, config, in, cmd.Stderr); err != nil && !errors.Is(err, syscall.EPIPE) { // of EPIPE its own words are the better ones
		cancel()
		_ = cmd.Wait()
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	return cmd.Wait()
}

// fetch writes the objects one after another, page by page.
func fetch(ctx context.Context, config *rest.Config, out, told io.Writer) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(served)
	if err != nil {
		return err
	}
	mapper, encoder := restmapper.NewDiscoveryRESTMapper(groups), json.NewEncoder(out)
	for _, partial := range imported {
		resource, err := mapper.ResourceFor(partial)
		if meta.IsNoMatchError(err) {
			fmt.Fprintf(told, "# %s: the cluster has none, %s\n", partial.Resource, lacking[partial.Group])
			continue
		}
		if err != nil {
			return err
		}
		pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(resource).List(ctx, options)
		})
		err = pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			one := object.(*unstructured.Unstructured)
			one.SetManagedFields(nil) // nobody reads who wrote what, and it is half of the text
			return encoder.Encode(one)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", partial.Resource, err)
		}
	}
	return nil
}
