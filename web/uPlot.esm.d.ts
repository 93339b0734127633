// The library as the page has it, beside its own scripts: there is no bundler that would find it in its package.
import uPlot from "uplot";

// biome-ignore lint/style/noDefaultExport: it is the library's
export default uPlot;
