package store

import (
	"errors"
	"fmt"
	"strings"

	"broker/core/internal/store/integrity"
	"broker/core/internal/store/rescue"
)

// openDamaged opens a damaged store for reading. Tables that cannot be read completely are replaced by tables in the
// folder work, with what could be read. A log is read up to its first damage; the commits behind it are lost. Without a
// manifest, all tables and logs are put together.
func (v *salvage) openDamaged(o Options, work string) error {
	fsys := rescue.NewFS(o.FS)
	o.ReadOnly, o.salvaging, o.FS = true, true, fsys
	damage, err := scanDamaged(fsys, o.Dir)
	if err != nil {
		return err
	}
	if err := v.repairTables(fsys, o.Dir, work); err != nil {
		return err
	}
	for v.from == nil && v.parts == nil {
		if isManifest(fsys, damage) {
			if err := v.putTogether(fsys, o.Dir, damage); err != nil {
				return err
			}
			break
		}
		s, err := Open(o)
		switch {
		case err == nil:
			v.from = s
		case !errors.As(err, &damage):
			return err
		case !o.emptied && v.loseTables(fsys, o.Dir, work, err):
			o.emptied = true // all tables with another size than in the manifest are replaced now
		case isManifest(fsys, damage):
		case !strings.HasSuffix(damage.Path, integrity.LogSuffix):
			return unsalvageable(err)
		default:
			if cutErr := v.cutLog(fsys, damage); cutErr != nil {
				return errors.Join(err, cutErr)
			}
		}
	}
	if v.from != nil && v.from.unguarded != nil {
		v.done.Lost = append(v.done.Lost, fmt.Sprintf("perhaps the newest commits: %v", cause(v.from.unguarded)))
	}
	if err := v.describeRanges(); err != nil {
		return errors.Join(err, v.close())
	}
	return nil
}

// close ends the reading of the damaged store.
func (v *salvage) close() error {
	if v.from == nil {
		return nil
	}
	return v.from.Close()
}

// scanDamaged scans the folder. Damage of anything but FORMAT is returned as such.
func scanDamaged(fsys *rescue.FS, dir string) (damage *DamageError, err error) {
	_, err = integrity.Scan(fsys, dir, &integrity.Guard{})
	if errors.As(err, &damage) && fsys.PathBase(damage.Path) == integrity.FormatFile {
		// The records say which format they need, and so does the new store's file.
		if err := fsys.Write(dir, integrity.FormatFile, integrity.FormatText(integrity.BaseFormat)); err != nil {
			return nil, err
		}
		damage = nil
		_, err = integrity.Scan(fsys, dir, &integrity.Guard{})
	}
	if errors.As(err, &damage) {
		err = nil
	}
	return damage, err
}

// isManifest reports whether a manifest is damaged or missing, or the file that names it.
func isManifest(fsys *rescue.FS, damage *DamageError) bool {
	if damage == nil {
		return false
	}
	name := fsys.PathBase(damage.Path)
	return strings.HasPrefix(name, integrity.ManifestPrefix) || strings.HasPrefix(name, integrity.ManifestMarker)
}

// putTogether reads the tables and the logs of a store without a manifest. Those that were no longer in use, but not
// removed yet, bring old states back.
func (v *salvage) putTogether(fsys *rescue.FS, dir string, damage *DamageError) error {
	commits, err := integrity.NewestCommits(fsys, dir)
	if err != nil {
		return err
	}
	if len(commits) == 0 && len(v.tables) == 0 {
		return fmt.Errorf("%s has no table and no log of a store: %w", dir, ErrNoStore)
	}
	path := func(table uint64) string { return fsys.PathJoin(dir, tableName(table)) }
	if v.parts, err = rescue.NewParts(fsys, path, v.tables, commits); err != nil {
		return err
	}
	v.done.Lost = append(v.done.Lost, fmt.Sprintf("the list of tables: %v; all %d tables and the newest logs were "+
		"read: jobs of a missing table are lost, some jobs may be in an older state, and some that had ended may be back",
		cause(damage), len(v.tables)))
	return nil
}

// cause says what is damaged, without what to do.
func cause(err error) error {
	var damage *DamageError
	if errors.As(err, &damage) {
		return damage.Cause()
	}
	return err
}

// unsalvageable says that a damaged store cannot be read at all. Its message does not lead back to Salvage.
func unsalvageable(err error) error {
	return fmt.Errorf("nothing can be copied: %w; restore the folder from a backup or an archive", cause(err))
}

// cutLog makes a log end before its first damage.
func (v *salvage) cutLog(fsys *rescue.FS, damage *DamageError) error {
	size, err := integrity.SoundLogBytes(fsys, damage.Path)
	if err != nil {
		return err
	}
	if !fsys.Cut(damage.Path, size) {
		return errors.New("the log cannot be read up to its damage")
	}
	v.done.Lost = append(v.done.Lost,
		fmt.Sprintf("the commits in %s after the first %d bytes: %v", damage.Path, size, damage.Err))
	return nil
}
