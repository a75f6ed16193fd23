// The one script pages link to. Each file names the markup it works on; none needs another.
import "./attach.js";
import "./composer.js";
import "./stick.js";
import "./mark.js";
import "./busy.js";
import "./overtaken.js";
import "./folds.js";
import "./snapshots.js";
import "./copy.js";
import "./overlays.js";
import "./shortcuts.js";
import "./theme.js";
import "./toasts.js";
import "./connection.js";
import "./relative-time.js";
import "./rail.js";
