// Two things that JupyterLab 4.6 does not do by itself.
//
// A link such as 02_coalesced.ipynb#cell-id=exercise-best_block leads to that cell. JupyterLab goes there as soon as
// the notebook is loaded; then the cells above get their heights, and the place moves away.
//
// A notebook that was only opened is not edited. JupyterLab writes the kernel's language into it, with the
// version of Python, and takes that for a change.
(() => {
  const FOLLOW = 'rendermime:handle-local-link';
  const CELL = '#cell-id=';
  const STILL = 700; // ms without a movement: the cells above have their heights
  const LONGEST = 15000; // ms, on a slow machine
  const TAKES_OVER = ['wheel', 'pointerdown', 'keydown', 'touchstart'];
  const frame = () => new Promise(done => requestAnimationFrame(done));

  const land = async (panel, id) => {
    await panel.context.ready;
    await panel.revealed;
    const notebook = panel.content;
    const index = notebook.widgets.findIndex(cell => cell.model.id === id);
    if (index < 0) return;
    const cell = notebook.widgets[index];
    let hands = false; // of the learner, who goes elsewhere
    const stop = () => { hands = true; };
    TAKES_OVER.forEach(name => panel.node.addEventListener(name, stop, {once: true, capture: true}));
    notebook.activeCellIndex = index;
    const begun = performance.now();
    let place = null;
    let since = begun;
    while (!hands && !panel.isDisposed && performance.now() - begun < LONGEST) {
      if (cell.node.isConnected) cell.node.scrollIntoView();
      else await notebook.scrollToItem(index, 'start').catch(() => null);
      await frame();
      const now = cell.node.isConnected ? Math.round(cell.node.getBoundingClientRect().top) : null;
      const height = notebook.node.querySelector('.jp-WindowedPanel-outer')?.scrollHeight;
      if (place !== `${now} ${height}`) since = performance.now();
      else if (now !== null && performance.now() - since > STILL) break;
      place = `${now} ${height}`;
    }
    TAKES_OVER.forEach(name => panel.node.removeEventListener(name, stop, {capture: true}));
  };

  const follow = async (tracker, {args, result}) => {
    await result;
    const panel = tracker.find(each => each.context.path === args.path);
    if (panel) await land(panel, decodeURIComponent(args.id.slice(CELL.length)));
  };

  const keepUnedited = panel => panel.context.ready.then(() => {
    const model = panel.model;
    model.metadataChanged.connect((_, change) => {
      if (change.key !== 'language_info' || model.dirty) return;
      setTimeout(() => { model.dirty = false; });
    });
  });

  const plugin = ({INotebookTracker}) => ({
    id: 'gemm-course:links',
    autoStart: true,
    requires: [INotebookTracker],
    activate: (app, tracker) => {
      app.commands.commandExecuted.connect((_, done) => {
        if (done.id === FOLLOW && done.args.id?.startsWith(CELL)) void follow(tracker, done);
      });
      tracker.forEach(keepUnedited);
      tracker.widgetAdded.connect((_, panel) => keepUnedited(panel));
    },
  });

  let shared = null;
  (window._JUPYTERLAB ??= {})['gemm-course-links'] = {
    init: scope => { shared = scope; },
    get: async () => {
      const notebook = (await Object.values(shared['@jupyterlab/notebook'])[0].get())();
      return () => ({__esModule: true, default: plugin(notebook)});
    },
  };
})();
