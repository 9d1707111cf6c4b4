// Package kubernetes checks the manifest against Kubernetes' own types.
package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decode reads objects like an API server with fieldValidation=Strict: unknown fields, duplicates and
// wrong types are errors.
func decode(text []byte) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	var list []runtime.Object
	for documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; {
		one := make([]byte, len(text)+1)
		n, err := documents.Read(one)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := strict.Decode(one[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, object)
	}
}

func manifest(t *testing.T) string {
	text, err := os.ReadFile("headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestManifest: the manifest has only fields of the types, and every name in it refers to an
// object.
func TestManifest(t *testing.T) {
	list, err := decode([]byte(manifest(t)))
	if err != nil {
		t.Fatal(err)
	}
	claims, deployments, services := map[string]bool{}, 0, 0
	for _, o := range list {
		if c, ok := o.(*corev1.PersistentVolumeClaim); ok {
			claims[c.Name] = true
		}
	}
	for _, o := range list {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			continue
		}
		deployments++
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("the selector %v does not select the pods, %v: %v", d.Spec.Selector, d.Spec.Template.Labels, err)
		}
		pod := d.Spec.Template.Spec
		for _, o := range list {
			s, ok := o.(*corev1.Service)
			if !ok {
				continue
			}
			services++
			if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) {
				t.Errorf("service %s: the selector %v does not select the pods, %v", s.Name, s.Spec.Selector, d.Spec.Template.Labels)
			}
			for _, p := range s.Spec.Ports {
				if !slices.ContainsFunc(pod.Containers[0].Ports, func(q corev1.ContainerPort) bool { return q.Name == p.TargetPort.StrVal && q.ContainerPort == p.Port }) {
					t.Errorf("service %s: the port %s leads to none of the pod's", s.Name, p.Name)
				}
			}
		}
		for _, v := range pod.Volumes {
			if c := v.PersistentVolumeClaim; c != nil && !claims[c.ClaimName] {
				t.Errorf("volume %s: there is no claim %s", v.Name, c.ClaimName)
			}
		}
		for _, c := range pod.Containers {
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
					t.Errorf("container %s mounts %s, which is no volume", c.Name, m.Name)
				}
			}
			for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if p == nil || p.HTTPGet == nil || !slices.ContainsFunc(c.Ports, func(q corev1.ContainerPort) bool { return q.Name == p.HTTPGet.Port.StrVal }) {
					t.Errorf("container %s: the probe %v asks no port that it has", c.Name, p)
				}
			}
		}
	}
	if len(list) != 3 || deployments != 1 || services != 1 {
		t.Errorf("%d objects, %d deployments, %d services", len(list), deployments, services)
	}
}

// TestStrict: the check finds errors in a manifest.
func TestStrict(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"imagePullPolicy:", "imagePullpolicy:", "unknown field"},
		{"replicas: 1", "replicas: one", "cannot unmarshal"},
		{"replicas: 1", "replicas: 1\n  replicas: 2", "already set"},
		{"apiVersion: apps/v1", "apiVersion: apps/v9", "no kind"},
		{"storage: 1Gi", "storage: 1Gx", "quantities"},
	} {
		text := manifest(t)
		if strings.Count(text, c.old) != 1 {
			t.Fatalf("%q is there %d times", c.old, strings.Count(text, c.old))
		}
		if _, err := decode([]byte(strings.Replace(text, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}
