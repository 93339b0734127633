// The page at /docs: Swagger UI with the OpenAPI description of this instance.

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
  // The validator badge would send requests to a third party.
  validatorUrl: null,
});
