// SPDX-License-Identifier: Apache-2.0

package library

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"libhorus.org/horus"
)

// Argument makes a program a child: it is its only argument, and Serve what it does.
const Argument = "libhorus"

// Child is libhorus in a child process of this program. A call that takes longer than `limit` ends the child, as its own crash
// does; from then on the answer is ErrGone, until Start.
func Child(options Options, limit time.Duration) (*Library, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{program: program, options: options, limit: limit}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &Library{c}, nil
}

type child struct {
	program string
	options Options
	limit   time.Duration

	cmd *exec.Cmd // nil = gone
	out *bufio.Writer
	enc *gob.Encoder
	dec *gob.Decoder
}

func (c *child) Gone() bool { return c.cmd == nil }

func (c *child) Start() error {
	c.Close()
	cmd := exec.Command(c.program, Argument)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // and it ends by itself when its input does
	to, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd, c.out = cmd, bufio.NewWriter(to)
	c.enc, c.dec = gob.NewEncoder(c.out), gob.NewDecoder(bufio.NewReader(from))
	var ready reply
	if err := c.exchange(&c.options, &ready); err != nil {
		return err
	}
	if ready.Status != 0 {
		c.Close()
		return &horus.Error{Status: ready.Status, Message: ready.Message}
	}
	return nil
}

func (c *child) do(_ context.Context, in *request, out *reply) error {
	if c.cmd == nil {
		return ErrGone
	}
	err := c.exchange(in, out)
	if err == nil && out.Status == 0 && in.Op == correct {
		c.options.Learned = in.Bytes // when it starts again, too
	}
	return err
}

// Prepare leaves the work to the child, which nothing else is asked of meanwhile.
func (c *child) Prepare(observations []byte) (Prepared, error) {
	return Prepared{observations: observations}, nil
}

func (c *child) exchange(in any, out *reply) error {
	process := c.cmd.Process
	late := time.AfterFunc(c.limit, func() { _ = process.Kill() })
	defer late.Stop()
	err := c.enc.Encode(in)
	if err == nil {
		err = c.out.Flush()
	}
	if err == nil {
		err = c.dec.Decode(out)
	}
	if err == nil {
		return nil
	}
	state := c.end()
	klog.ErrorS(err, "Horus: the child process with libhorus is gone", "ended", fmt.Sprint(state), "callTimeout", c.limit)
	return ErrGone
}

func (c *child) Close() { c.end() }

// end kills the child, if it lives, and tells how it ended.
func (c *child) end() *os.ProcessState {
	if c.cmd == nil {
		return nil
	}
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	state := c.cmd.ProcessState
	c.cmd = nil
	return state
}

// Serve answers what a parent asks, until its input ends.
func Serve(in io.Reader, out io.Writer) error {
	dec, buffered := gob.NewDecoder(bufio.NewReader(in)), bufio.NewWriter(out)
	enc := gob.NewEncoder(buffered)
	var options Options
	if err := dec.Decode(&options); err != nil {
		return err
	}
	var ready reply
	l, err := newLocal(options)
	var told *horus.Error
	if errors.As(err, &told) {
		ready.Status, ready.Message = told.Status, told.Message
	} else if err != nil {
		ready.Status, ready.Message = horus.ErrInternal, err.Error()
	}
	for answer := &ready; ; {
		if err := enc.Encode(answer); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
		if l == nil {
			return nil
		}
		var next request
		if err := dec.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer = &reply{}
		if err := l.do(context.Background(), &next, answer); err != nil {
			answer.Status, answer.Message = horus.ErrInternal, err.Error()
		}
	}
}
