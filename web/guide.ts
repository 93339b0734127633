// The page at /docs/integrate, which packaging/guide.js makes of docs/integrate.md.

import { setUpThemeSwitch } from "./preferences.js";
import { getElement } from "./shared/elements/dom.js";

setUpThemeSwitch(getElement("theme", HTMLButtonElement));
