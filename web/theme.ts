const key = "theme";
const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const labels: Readonly<Record<Theme, string>> = {
  auto: "Theme: as the system",
  light: "Theme: light",
  dark: "Theme: dark",
};

/** The button that goes through the themes. The choice is kept in the browser, where it lets us. */
export function startTheme(button: HTMLButtonElement): void {
  let theme = themes.find((known) => known === stored()) ?? "auto";
  const apply = (): void => {
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", labels[theme]);
    button.title = labels[theme];
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "auto";
    try {
      localStorage.setItem(key, theme);
    } catch {
      // It holds for this visit then.
    }
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
