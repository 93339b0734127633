// The page at /docs: Swagger UI over the description that this instance serves.

declare const SwaggerUIBundle: (options: Readonly<Record<string, unknown>>) => unknown;

const darkModeQuery = matchMedia("(prefers-color-scheme: dark)");
const applySystemTheme = () => document.documentElement.classList.toggle("dark-mode", darkModeQuery.matches);
darkModeQuery.addEventListener("change", applySystemTheme);
applySystemTheme();

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#operations",
  deepLinking: true,
  displayRequestDuration: true,
  supportedSubmitMethods: ["get"],
  tryItOutEnabled: true,
  // Its badge would ask somebody else's server.
  validatorUrl: null,
});
