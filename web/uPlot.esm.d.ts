// Types of the uPlot module that the build copies beside the page's scripts: no bundler resolves the package.
import uPlot from "uplot";

// biome-ignore lint/style/noDefaultExport: the library has a default export
export default uPlot;
