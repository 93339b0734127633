const STORAGE_KEY = "theme";
const THEMES = ["auto", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const THEME_LABELS: Readonly<Record<Theme, string>> = {
  auto: "Theme: system",
  light: "Theme: light",
  dark: "Theme: dark",
};

/** Makes a button cycle through the themes. The choice is stored in the browser if it permits that. */
export function setUpThemeSwitch(button: HTMLButtonElement): void {
  let theme = THEMES.find((name) => name === readStoredTheme()) ?? "auto";
  const apply = (): void => {
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", THEME_LABELS[theme]);
    button.title = THEME_LABELS[theme];
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "auto";
    try {
      localStorage.setItem(STORAGE_KEY, theme);
    } catch {
      // Storage is blocked: the choice lasts until the page is closed.
    }
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

function readStoredTheme(): string | null {
  try {
    return localStorage.getItem(STORAGE_KEY);
  } catch {
    return null;
  }
}
