// What readers choose for all views. The choices are stored in the browser if it permits that.

const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const THEME_LABELS: Readonly<Record<Theme, string>> = {
  auto: "Theme: system",
  light: "Theme: light",
  dark: "Theme: dark",
};

/** Makes a button cycle through the themes. */
export function setUpThemeSwitch(button: HTMLButtonElement): void {
  let theme = THEMES.find((name) => name === readChoice("theme")) ?? "auto";
  const apply = (): void => {
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", THEME_LABELS[theme]);
    button.title = THEME_LABELS[theme];
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
    storeChoice("theme", theme);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

/**
 * Makes a checkbox switch the developer view, which shows API fields and raw values beside what they mean. The style sheets
 * hide the elements with the classes `field`, `raw` and `developer` without it, so views need not know which view it is.
 */
export function setUpDeveloperSwitch(checkbox: HTMLInputElement): void {
  checkbox.checked = readChoice("developer") === "on";
  const apply = (): void => {
    document.documentElement.dataset.developer = checkbox.checked ? "on" : "off";
  };
  checkbox.addEventListener("change", () => {
    storeChoice("developer", checkbox.checked ? "on" : "off");
    apply();
  });
  apply();
}

function readChoice(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Where storage is blocked, the choice lasts until the page is closed. */
function storeChoice(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {}
}
