/** The options of Node.js with which `npm start`, the container and the unit for systemd run the service. */
export const NODE_OPTIONS = ["--max-semi-space-size=16"];
