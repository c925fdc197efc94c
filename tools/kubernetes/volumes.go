package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const provisioner = "tfdeploy.test/folders"

// newVolumesCommand creates a folder, which all nodes share, for each claim of our storage class, and removes it after the claim.
func newVolumesCommand() *cobra.Command {
	var kubeconfig, folder string
	command := &cobra.Command{Use: "volumes", RunE: func(*cobra.Command, []string) error {
		client, err := newClient(kubeconfig)
		if err != nil {
			return err
		}
		// What failed is tried again after this time.
		factory := informers.NewSharedInformerFactory(client, 5*time.Second)
		core := factory.Core().V1()
		volumes := volumes{client, folder}
		for informer, update := range map[cache.SharedIndexInformer]func(any) error{
			core.PersistentVolumeClaims().Informer(): volumes.provide, core.PersistentVolumes().Informer(): volumes.remove,
		} {
			informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(added any) { report(update(added)) },
				UpdateFunc: func(_, updated any) { report(update(updated)) },
			})
		}
		factory.Start(nil)
		select {}
	}}
	addKubeconfig(command, &kubeconfig)
	command.Flags().StringVar(&folder, "folder", "", "where volumes are")
	return command
}

type volumes struct {
	client kubernetes.Interface
	folder string
}

func (v volumes) provide(object any) error {
	claim := object.(*core.PersistentVolumeClaim)
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Annotations["volume.kubernetes.io/storage-provisioner"] != provisioner {
		return nil
	}
	path := filepath.Join(v.folder, string(claim.UID))
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o777); err != nil { // whatever the umask is
		return err
	}
	volume := &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{
			Name: "pvc-" + string(claim.UID), Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner},
		},
		Spec: core.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: core.ResourceList{core.ResourceStorage: claim.Spec.Resources.Requests[core.ResourceStorage]},
			ClaimRef:                      &core.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeReclaimPolicy: core.PersistentVolumeReclaimDelete, StorageClassName: *claim.Spec.StorageClassName,
			PersistentVolumeSource: core.PersistentVolumeSource{HostPath: &core.HostPathVolumeSource{Path: path}},
		},
	}
	_, err := v.client.CoreV1().PersistentVolumes().Create(context.TODO(), volume, meta.CreateOptions{})
	return err
}

func (v volumes) remove(object any) error {
	volume := object.(*core.PersistentVolume)
	if volume.Status.Phase != core.VolumeReleased || volume.Annotations["pv.kubernetes.io/provisioned-by"] != provisioner {
		return nil
	}
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return err
	}
	return v.client.CoreV1().PersistentVolumes().Delete(context.TODO(), volume.Name, meta.DeleteOptions{})
}

func report(err error) {
	if err != nil {
		klog.ErrorS(err, "to be tried again")
	}
}
