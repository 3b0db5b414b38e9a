// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	encode "sigs.k8s.io/yaml"

	"libhorus.org/kubernetes/internal/model"
	"libhorus.org/kubernetes/internal/objects"
)

// modelFlags say where a cluster keeps what it learned.
type modelFlags struct{ namespace, name string }

func (f *modelFlags) store() (model.Store, error) {
	client, namespace, err := connect(f.namespace)
	return model.Store{Client: client, Namespace: namespace, Name: f.name}, err
}

func modelCommand() *cobra.Command {
	var flags modelFlags
	cmd := &cobra.Command{Use: "model", Short: "What a cluster learned from its jobs: list, export, import, roll back"}
	cmd.PersistentFlags().StringVarP(&flags.namespace, "namespace", "n", "", "namespace of the chart; the context's otherwise")
	cmd.PersistentFlags().StringVar(&flags.name, "name", "horus-model", "ConfigMap of the model: RELEASE-model")
	var profiles bool
	export := &cobra.Command{
		Use: "export", Short: "Print the model as a manifest; without --profiles it names no job", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return exportModel(context.Background(), cmd.OutOrStdout(), flags, profiles)
		},
	}
	export.Flags().BoolVar(&profiles, "profiles", false, "and the JobProfiles of all namespaces, with their names and what was observed of each")
	cmd.AddCommand(export,
		&cobra.Command{
			Use: "list", Short: "The versions that are kept", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return listModels(context.Background(), cmd.OutOrStdout(), flags)
			},
		},
		&cobra.Command{
			Use: "import FILE", Short: "Make an exported model the one that counts, and add the profiles that are not there yet", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return importModel(context.Background(), cmd.OutOrStdout(), flags, args[0])
			},
		},
		&cobra.Command{
			Use: "rollback VERSION", Short: "Make an earlier version the one that counts", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				store, err := flags.store()
				if err != nil {
					return err
				}
				version, err := store.Version(context.Background(), args[0])
				if err != nil {
					return err
				}
				return supersede(context.Background(), cmd.OutOrStdout(), store, version, "what version "+args[0]+" says")
			},
		})
	return cmd
}

// supersede makes a model the next version.
func supersede(ctx context.Context, out io.Writer, store model.Store, next model.Model, what string) error {
	now, _, err := store.Load(ctx)
	if err != nil {
		return err
	}
	next.Version, next.At = now.Version+1, time.Now()
	if err := store.Save(ctx, next); err != nil {
		return err
	}
	fmt.Fprintf(out, "version %d is %s; the scheduler takes it at once, the observer before it commits again\n", next.Version, what)
	return nil
}

func listModels(ctx context.Context, out io.Writer, flags modelFlags) error {
	store, err := flags.store()
	if err != nil {
		return err
	}
	versions, err := store.Versions(ctx)
	if err != nil {
		return err
	}
	for _, one := range versions {
		fmt.Fprintf(out, "%d\t%s\t%d windows", one.Version, one.At.Format(time.RFC3339), one.Windows)
		if one.RolledBack > 0 {
			fmt.Fprintf(out, "\ttakes back %d", one.RolledBack)
		}
		fmt.Fprintln(out)
	}
	return nil
}

func dynamicClient() (dynamic.Interface, error) {
	config, err := kubeconfig().ClientConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

func exportModel(ctx context.Context, out io.Writer, flags modelFlags, profiles bool) error {
	store, err := flags.store()
	if err != nil {
		return err
	}
	now, _, err := store.Load(ctx)
	if err != nil {
		return err
	}
	if now.Version == 0 {
		return fmt.Errorf("ConfigMap %s/%s: expected a model, found none: nothing was learned yet, or -n or --name is another", store.Namespace, store.Name)
	}
	object, err := model.Object(flags.name, now)
	if err != nil {
		return err
	}
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	documents := []any{object}
	if profiles {
		client, err := dynamicClient()
		if err != nil {
			return err
		}
		listed, err := client.Resource(objects.Profiles).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range listed.Items {
			documents = append(documents, map[string]any{
				"apiVersion": one.GetAPIVersion(), "kind": one.GetKind(),
				"metadata": map[string]any{"name": one.GetName(), "namespace": one.GetNamespace()},
				"spec":     one.Object["spec"], "status": one.Object["status"],
			})
		}
	}
	for _, document := range documents {
		text, err := encode.Marshal(document)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", text)
	}
	return nil
}

// importModel reads all of the file before it changes anything.
func importModel(ctx context.Context, out io.Writer, flags modelFlags, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var learned *model.Model
	var profiles []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var one unstructured.Unstructured
		err := decoder.Decode(&one.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		switch one.GetKind() {
		case "ConfigMap":
			found, err := modelIn(one.Object)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			learned = &found
		case "JobProfile":
			if _, err := objects.ProfileOf(one.Object["spec"], one.Object["status"]); err != nil {
				return fmt.Errorf("%s: JobProfile %s/%s: %w", path, one.GetNamespace(), one.GetName(), err)
			}
			profiles = append(profiles, &one)
		default:
			return fmt.Errorf("%s: expected a ConfigMap and JobProfiles, found %q", path, one.GetKind())
		}
	}
	if learned == nil {
		return fmt.Errorf("%s: expected the ConfigMap of a model, found none", path)
	}
	store, err := flags.store()
	if err != nil {
		return err
	}
	if err := addProfiles(ctx, out, profiles); err != nil {
		return err
	}
	return supersede(ctx, out, store, *learned, "what "+path+" says")
}

func modelIn(object map[string]any) (model.Model, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return model.Model{}, err
	}
	var found v1.ConfigMap
	if err := json.Unmarshal(raw, &found); err != nil {
		return model.Model{}, err
	}
	learned, err := model.Of(&found)
	if err == nil {
		err = learned.Check()
	}
	return learned, err
}

// addProfiles makes those that are not there, with what was observed of them.
func addProfiles(ctx context.Context, out io.Writer, profiles []*unstructured.Unstructured) error {
	if len(profiles) == 0 {
		return nil
	}
	client, err := dynamicClient()
	if err != nil {
		return err
	}
	for _, one := range profiles {
		into := client.Resource(objects.Profiles).Namespace(one.GetNamespace())
		status := one.Object["status"]
		_, err := into.Create(ctx, one, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			fmt.Fprintf(out, "JobProfile %s/%s is there already and stays as it is\n", one.GetNamespace(), one.GetName())
			continue
		}
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		if _, err := into.Patch(ctx, one.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}
