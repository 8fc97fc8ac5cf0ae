import{A as r,Z as m,b as o,kb as p,la as i}from"./shell.js";var t=document.getElementById("app");t&&i().finally(()=>{r(),o(m(p,{}),t)});
