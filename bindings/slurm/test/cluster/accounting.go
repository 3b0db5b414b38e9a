// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// AccountingMissing says what this machine lacks for StartAccounting; "" = nothing.
func AccountingMissing() string {
	for _, name := range []string{"slurmdbd", "sacct", "mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(name); err != nil {
			return name + " is not installed (Debian: slurmdbd, mariadb-server)"
		}
	}
	keeper, _ := exec.LookPath("slurmdbd")
	controller, _ := exec.LookPath("slurmctld")
	if filepath.Dir(keeper) != filepath.Dir(controller) { // as where scripts/slurm-of has another slurmctld
		return keeper + " is of another system than " + controller
	}
	return ""
}

const accounting = `AuthType=auth/munge
AuthInfo=%[1]s/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=%[2]d
SlurmUser=root
PidFile=%[1]s/slurmdbd.pid
LogFile=%[1]s/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%[3]d
StorageUser=slurm
StoragePass=%[4]s
StorageLoc=slurm
`

// StartAccounting starts a MariaDB and a slurmdbd in the cluster's folder, and the cluster anew with them. It counts GPUs and
// shards and keeps comments.
func (c *Cluster) StartAccounting() {
	c.t.Helper()
	port := ports(c.t, 2)
	var random [16]byte
	_, _ = rand.Read(random[:])
	password := hex.EncodeToString(random[:])
	data := filepath.Join(c.Dir, "database")
	out, err := exec.Command("mariadb-install-db", "--no-defaults", "--user=root", "--datadir="+data, "--skip-test-db").CombinedOutput()
	if err != nil {
		c.t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	c.Write("database.sql", fmt.Sprintf("CREATE DATABASE slurm;\nCREATE USER slurm@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON slurm.* TO slurm@'%%';\n", password))
	database := c.start("mariadbd", "--no-defaults", "--user=root", "--datadir="+data, "--socket="+c.Dir+"/database.socket",
		"--bind-address=127.0.0.1", "--skip-name-resolve", fmt.Sprintf("--port=%d", port), "--init-file="+c.Dir+"/database.sql")
	c.Write("slurmdbd.conf", fmt.Sprintf(accounting, c.Dir, port+1, port, password))
	must(c.t, os.Chmod(filepath.Join(c.Dir, "slurmdbd.conf"), 0o600))
	c.Wait("the database listens", time.Minute, func() bool { _, err := os.Stat(c.Dir + "/database.socket"); return err == nil })
	keeper := c.start("slurmdbd", "-D")
	c.t.Cleanup(func() {
		for _, cmd := range []*exec.Cmd{keeper, database} {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	})
	c.Write("slurm.conf", strings.Replace(c.Read("slurm.conf"), "AccountingStorageType=accounting_storage/none", fmt.Sprintf(
		"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort=%d\nAccountingStoragePass=%s/munge.socket\n"+
			"AccountingStorageTRES=gres/gpu,gres/shard\nAccountingStoreFlags=job_comment", port+1, c.Dir), 1))
	c.Wait("slurmdbd answers", time.Minute, func() bool { return exec.Command("sacctmgr", "-n", "list", "cluster").Run() == nil })
	c.Restart()
}
